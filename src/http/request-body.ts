import { ChunkList } from '../common/bytes/chunk-list.js';
import { missingModel } from '../common/errors/catalogue.js';
import { JsonDocument } from '../common/json/json-document.js';
import { JsonIndexer } from '../common/json/json-indexer.js';
import { FormSyntaxError } from '../common/multipart/form-syntax-error.js';
import { ModelForm } from '../common/multipart/model-form.js';

/** A body in full. Of a form, `document` holds what it says of the model. */
export interface RequestBody {
  readonly document: JsonDocument;
  readonly form: ModelForm | null;
}

/** Takes the decoded pieces of one body. Both may throw what the client is told, or a JsonSyntaxError. */
export interface BodyParts {
  push(chunk: Buffer): void;
  end(): RequestBody;
}

/** Indexed piece by piece as it arrives, never joined. */
export class JsonBody implements BodyParts {
  readonly #indexer = new JsonIndexer();

  push(chunk: Buffer): void {
    this.#indexer.push(chunk);
  }

  end(): RequestBody {
    return { document: this.#indexer.end(), form: null };
  }
}

/** A form, joined once it is whole. */
export class FormBody implements BodyParts {
  readonly #held = new ChunkList();

  constructor(private readonly contentType: string) {}

  push(chunk: Buffer): void {
    this.#held.push(chunk);
  }

  end(): RequestBody {
    const bytes = this.#held.concat();
    this.#held.take();
    const form = parsed(bytes, this.contentType);
    return { document: JsonDocument.parse(Buffer.from(JSON.stringify({ model: form.model }))), form };
  }
}

function parsed(bytes: Buffer, contentType: string): ModelForm {
  try {
    return ModelForm.parse(bytes, contentType);
  } catch (error) {
    throw error instanceof FormSyntaxError ? missingModel(error.reason) : error;
  }
}
