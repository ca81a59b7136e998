import type { ErrorForm } from '../common/errors/error-form.js';

/** Models as OpenAI's and as Anthropic's clients expect them. */
export class ModelForms {
  readonly #createdSeconds: number;
  readonly #createdAt: string;

  /** @param startedMs unix milliseconds; the only date that all models have in common */
  constructor(startedMs: number) {
    this.#createdSeconds = Math.floor(startedMs / 1000);
    this.#createdAt = new Date(this.#createdSeconds * 1000).toISOString();
  }

  one(name: string, form: ErrorForm): object {
    if (form === 'anthropic')
      return { type: 'model', id: name, display_name: name, created_at: this.#createdAt };
    return { id: name, object: 'model', created: this.#createdSeconds, owned_by: 'llm-proxy' };
  }

  list(names: readonly string[], form: ErrorForm): object {
    const data = names.map((name) => this.one(name, form));
    if (form !== 'anthropic') return { object: 'list', data };
    return { data, has_more: false, first_id: names[0] ?? null, last_id: names.at(-1) ?? null };
  }
}
