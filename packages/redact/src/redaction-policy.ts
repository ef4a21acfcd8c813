import { hash } from 'node:crypto'

/** What is secret beyond what is known by its shape, and what is not secret although it looks so. */
export interface RedactionPolicy {
  /** Values that are replaced wherever they stand, by name: the keys of the providers in use, secrets of the environment. */
  secrets?: Readonly<Record<string, string>>
  /**
   * What the user lets pass: the name of a secret or of a variable in text, or `sha256:` and the hash of a value in hex. A value that
   * is allowed by name is allowed wherever it stands.
   */
  allow?: readonly string[]
}

/** How a value is named in `allow` without being written there. */
export function allowanceOf(value: string): string {
  return `sha256:${hash('sha256', value)}`
}
