/** The bytes are no form whose model can be told. Its text is ours: nothing of the body is ever in it. */
export class FormSyntaxError extends Error {
  /** @param reason goes on after "the form": `has no field "model"` */
  constructor(readonly reason: string) {
    super(`the form ${reason}`);
    this.name = 'FormSyntaxError';
  }
}
