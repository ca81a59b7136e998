import { ByteSource } from './byte-source.js';
import { OPEN_OBJECT } from './json-bytes.js';
import { JsonDocument } from './json-document.js';
import { JsonIndex } from './json-index.js';
import { JsonScanner } from './json-scanner.js';

/**
 * Indexes a body while it arrives, so that the document is ready with its last byte. Lives for one body. Keeps the
 * chunks as they are (no join, no copy); the caller must not write into them afterwards.
 */
export class JsonIndexer {
  readonly #source = new ByteSource();
  readonly #scanner = new JsonScanner(this.#source, OPEN_OBJECT);

  /** @throws JsonSyntaxError as soon as the bytes so far cannot become a JSON object; no more may be pushed then */
  push(chunk: Buffer): void {
    const base = this.#source.length;
    this.#source.append(chunk);
    this.#scanner.feed(chunk, 0, chunk.length, base);
  }

  /** @throws JsonSyntaxError where the body is not complete */
  end(): JsonDocument {
    return JsonDocument.over(
      JsonIndex.finish(this.#scanner, this.#source, 0, this.#source.length, OPEN_OBJECT),
    );
  }
}
