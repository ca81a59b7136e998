import 'reflect-metadata';
import { writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { configJsonSchemaText } from './schema/json-schema.js';

// Two levels below the package both as source and as built file.
writeFileSync(
  fileURLToPath(new URL('../../config/config.schema.json', import.meta.url)),
  configJsonSchemaText(),
);
