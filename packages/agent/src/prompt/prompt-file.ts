import { readFileSync } from 'node:fs'

/** The prompt in the Markdown file with this name beside this module. It is shipped with the package. */
export function promptFile(name: string): string {
  return readFileSync(new URL(`../../src/prompt/${name}.md`, import.meta.url), 'utf8').trim()
}
