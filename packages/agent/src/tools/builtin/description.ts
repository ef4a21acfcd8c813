import { readFileSync } from 'node:fs'

/** What a tool tells the model about itself: the Markdown file beside its source, which is shipped with the package. */
export function descriptionOf(name: string): string {
  return readFileSync(new URL(`../../../src/tools/builtin/${name}.md`, import.meta.url), 'utf8').trim()
}
