import { hostName, text } from './text-rules.js';
import { Setting } from './setting.js';

/** `tls:` of a provider: files in PEM form, read when the configuration is loaded. */
export class TlsSection {
  @Setting({
    rule: text,
    example: './tls/company-ca.pem',
    description:
      'File with certificate authorities (PEM), trusted for this provider besides those that Node trusts; relative to this file.',
  })
  ca?: string;

  @Setting({
    rule: text,
    example: './tls/client.pem',
    description: 'File with the client certificate, its chain after it (PEM); needs key.',
  })
  cert?: string;

  @Setting({
    rule: text,
    example: './tls/client.key',
    description: 'File with the private key of cert (PEM, not encrypted).',
  })
  key?: string;

  @Setting({
    rule: hostName,
    example: 'llm.internal.example',
    description:
      "Name that is asked for and that the provider's certificate must be for; default: the host of the url.",
  })
  servername?: string;
}
