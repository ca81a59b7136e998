/** A wall clock that stands still until the test moves it. */
export class ManualWallClock {
  constructor(public ms: number = Date.UTC(2026, 0, 1)) {}

  readonly now = (): number => this.ms;
}
