import { readdirSync, readFileSync } from 'node:fs';
import { join, posix } from 'node:path';
import { fileURLToPath } from 'node:url';
import ts from 'typescript';

const SRC = fileURLToPath(new URL('../../src', import.meta.url));

export interface SourceImport {
  readonly specifier: string;
  /** Path from `src/` for a file of ours, else null. */
  readonly target: string | null;
  readonly typeOnly: boolean;
}

/** One file of `src/`, parsed. */
export interface SourceFile {
  /** From `src/`, with slashes. */
  readonly path: string;
  readonly text: string;
  readonly lines: number;
  readonly imports: readonly SourceImport[];
  readonly tree: ts.SourceFile;
}

export function sourceFiles(): SourceFile[] {
  return readdirSync(SRC, { recursive: true, encoding: 'utf8' })
    .map((path) => path.replaceAll('\\', '/'))
    .filter((path) => path.endsWith('.ts'))
    .sort()
    .map(parse);
}

function parse(path: string): SourceFile {
  const text = readFileSync(join(SRC, path), 'utf8');
  const tree = ts.createSourceFile(path, text, ts.ScriptTarget.ES2023, true);
  return { path, text, tree, lines: text.trimEnd().split('\n').length, imports: importsOf(tree, path) };
}

function importsOf(tree: ts.SourceFile, path: string): SourceImport[] {
  const found: SourceImport[] = [];
  visit(tree, (node) => {
    if (
      (ts.isImportDeclaration(node) || ts.isExportDeclaration(node)) &&
      node.moduleSpecifier !== undefined
    ) {
      const typeOnly = ts.isImportDeclaration(node) ? isTypeOnly(node.importClause) : node.isTypeOnly;
      found.push(importOf((node.moduleSpecifier as ts.StringLiteral).text, path, typeOnly));
    }
    if (ts.isCallExpression(node) && node.expression.kind === ts.SyntaxKind.ImportKeyword) {
      const [argument] = node.arguments;
      if (argument !== undefined && ts.isStringLiteral(argument))
        found.push(importOf(argument.text, path, false));
    }
  });
  return found;
}

function isTypeOnly(clause: ts.ImportClause | undefined): boolean {
  if (clause === undefined) return false;
  if (clause.phaseModifier === ts.SyntaxKind.TypeKeyword) return true;
  const { namedBindings: bindings } = clause;
  return (
    clause.name === undefined &&
    bindings !== undefined &&
    ts.isNamedImports(bindings) &&
    bindings.elements.every((element) => element.isTypeOnly)
  );
}

function importOf(specifier: string, path: string, typeOnly: boolean): SourceImport {
  const ours = specifier.startsWith('.');
  const target = ours ? posix.join(posix.dirname(path), specifier).replace(/\.js$/, '.ts') : null;
  return { specifier, target, typeOnly };
}

export function visit(node: ts.Node, see: (node: ts.Node) => void): void {
  see(node);
  ts.forEachChild(node, (child) => visit(child, see));
}

/** Uses of `any` as a type. */
export function anyTypes(file: SourceFile): number {
  let count = 0;
  visit(file.tree, (node) => {
    if (node.kind === ts.SyntaxKind.AnyKeyword) count++;
  });
  return count;
}

/** Names that the file exports by declaration. */
export function exportedNames(file: SourceFile): string[] {
  return file.tree.statements.flatMap((statement) => {
    const exported =
      ts.canHaveModifiers(statement) &&
      ts.getModifiers(statement)?.some(({ kind }) => kind === ts.SyntaxKind.ExportKeyword);
    if (exported !== true) return [];
    if (ts.isVariableStatement(statement))
      return statement.declarationList.declarations.map(({ name }) => name.getText());
    const { name } = statement as { name?: ts.Identifier };
    return name === undefined ? [] : [name.text];
  });
}

/** Classes and interfaces, exported or not. */
export function declaredTypes(file: SourceFile): string[] {
  const names: string[] = [];
  visit(file.tree, (node) => {
    if ((ts.isClassDeclaration(node) || ts.isInterfaceDeclaration(node)) && node.name !== undefined)
      names.push(node.name.text);
  });
  return names;
}
