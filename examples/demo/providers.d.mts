export interface DemoProviders {
  /** `DEMO_GPU_URL`, `DEMO_FLAKY_URL` and `DEMO_PAID_URL`, as `config/demo.yaml` wants them. */
  readonly environment: Readonly<Record<string, string>>;
  gpuPeak(): number;
  close(): Promise<unknown>;
}

export function startDemoProviders(options?: { readonly wordMs?: number }): Promise<DemoProviders>;
