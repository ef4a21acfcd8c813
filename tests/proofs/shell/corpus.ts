import { readFileSync } from 'node:fs'

/** The commands of a corpus: one for each line, with `⏎` for a line's end inside of a command and `# ` before a remark. */
export function readCorpus(name: string): string[] {
  return commandsIn(textOf(name))
}

export interface Bypasses {
  all: string[]
  /** Those that make a file, folder, link or pipe whose name begins with C when they are run in the arena. */
  canaries: string[]
}

export function readBypasses(): Bypasses {
  const [before = ''] = textOf('shell-bypass.txt').split('# What follows does its harm in another way')
  return { all: readCorpus('shell-bypass.txt'), canaries: commandsIn(before) }
}

/** Commands that do harm only in a folder that somebody prepared for them. */
export function readPlanted(): string[] {
  const groups = JSON.parse(textOf('shell-planted.json')) as { commands: string[] }[]
  return groups.flatMap(({ commands }) => commands)
}

function textOf(name: string): string {
  return readFileSync(new URL(`../../corpus/${name}`, import.meta.url), 'utf8')
}

function commandsIn(text: string): string[] {
  return text
    .split('\n')
    .filter((line) => line !== '' && !line.startsWith('# '))
    .map((line) => line.replaceAll('⏎', '\n'))
}
