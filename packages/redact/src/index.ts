export { secretsOf } from './redaction-policy.ts'
export type { RedactingByteStream, RedactingStream } from './redacting-stream.ts'
export { allowanceOf, type RedactionPolicy } from './redaction-policy.ts'
export { createRedactor, defaultPolicy, type Redactor } from './redactor.ts'
