/** The shared store did not answer, or cannot. `message` never holds its url. */
export class StateUnavailable extends Error {
  override readonly name = 'StateUnavailable';
}
