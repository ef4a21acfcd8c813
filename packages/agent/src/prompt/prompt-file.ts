import { readFileSync } from 'node:fs'

/** What a model is asked to do: the Markdown file of this name beside this one, which is shipped with the package. */
export function promptFile(name: string): string {
  return readFileSync(new URL(`../../src/prompt/${name}.md`, import.meta.url), 'utf8').trim()
}
