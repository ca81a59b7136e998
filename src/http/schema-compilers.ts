import { createRequire } from 'node:module';
import type { FastifyServerOptions } from 'fastify';

type Compilers = Required<
  NonNullable<NonNullable<FastifyServerOptions['schemaController']>['compilersFactory']>
>;

// Both come with Fastify and are its own.
const requireOfFastify = createRequire(createRequire(import.meta.url).resolve('fastify'));
const compilerOf = <Name extends keyof Compilers>(packageName: string): Compilers[Name] => {
  const build = requireOfFastify(packageName) as () => Compilers[Name];
  return build();
};

/**
 * Fastify's own compilers of route schemas, loaded with the first route that has one: no route of this service has, a
 * plugin's may, and the start need not pay for it.
 */
export const schemaCompilers: Compilers = {
  buildValidator: (...args) => compilerOf<'buildValidator'>('@fastify/ajv-compiler')(...args),
  buildSerializer: (...args) =>
    compilerOf<'buildSerializer'>('@fastify/fast-json-stringify-compiler')(...args),
};
