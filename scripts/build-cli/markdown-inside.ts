import { globSync, readFileSync } from 'node:fs'
import { basename, dirname, join, resolve } from 'node:path'

const agent = resolve(import.meta.dirname, '../../packages/agent/src')

/** The modules of the agent that read Markdown files beside their source, each with the function that it exports. */
export const markdownReaders: Readonly<Record<string, string>> = {
  [join(agent, 'tools/builtin/description.ts')]: 'descriptionOf',
  [join(agent, 'prompt/prompt-file.ts')]: 'promptFile',
}

/** The program of such a module with the texts inside: a bundle has no files beside it. Undefined for all other modules. */
export function withMarkdownInside(module: string): string | undefined {
  const reader = markdownReaders[module]
  if (reader === undefined) return undefined
  const files = globSync(join(dirname(module), '*.md')).toSorted()
  const texts = files.map((file) => [basename(file, '.md'), readFileSync(file, 'utf8').trim()])
  return `const texts = ${JSON.stringify(Object.fromEntries(texts))}\nexport const ${reader} = (name) => texts[name]\n`
}
