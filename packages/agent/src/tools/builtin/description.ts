import { readFileSync } from 'node:fs'

/** The description that the model receives: the Markdown file beside the tool's source, shipped with the package. */
export function descriptionOf(name: string): string {
  return readFileSync(new URL(`../../../src/tools/builtin/${name}.md`, import.meta.url), 'utf8').trim()
}
