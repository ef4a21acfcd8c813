import { readFileSync } from 'node:fs'

/** The commands of a corpus: one for each line, with `⏎` for a line's end inside of a command and `# ` before a remark. */
export function readCorpus(name: string): string[] {
  const text = readFileSync(new URL(`../../corpus/${name}`, import.meta.url), 'utf8')
  return text
    .split('\n')
    .filter((line) => line !== '' && !line.startsWith('# '))
    .map((line) => line.replaceAll('⏎', '\n'))
}
