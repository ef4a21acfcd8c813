import { secretsOf } from './known-values.ts'
import type { RedactionPolicy } from './redaction-policy.ts'

/** What is secret where nobody says more: what our own environment calls so. */
export function defaultPolicy(): RedactionPolicy {
  return { secrets: secretsOf(process.env) }
}
