import { resolve } from 'node:path'
import type { SimpleCommand } from './shell/command-reader.ts'
import { matchesOf, startOf, textOf, type Word } from './shell/words/word.ts'

/** Files that a command deletes: a path and everything below it, or only the files with such a name. */
export interface Deletion {
  path: string
  /** With `*` and `?`. */
  name?: string
}

/** What a command is known to delete. What a program deletes by itself, such as `make clean`, is unknown. */
export function deletionsOf({ words, folders, isInner }: SimpleCommand): Deletion[] {
  const [program, ...rest] = words
  const name = program && textOf(program)?.replace(/^.*\//, '')
  switch (name) {
    case 'rm':
    case 'unlink':
    case 'shred': {
      const operands = rest.filter((word) => !startOf(word).startsWith('-'))
      // `xargs rm` gets its operands later.
      if (operands.length === 0) return isInner ? folders.map(everything) : []
      return operands.flatMap((word) => folders.flatMap((folder) => pathsIn(word, folder)))
    }
    case 'git':
      return isCleaning(rest.map(textOf)) ? folders.map(everything) : []
    case 'find':
      return findDeletions(rest, folders)
    default:
      return []
  }
}

function everything(path: string): Deletion {
  return { path }
}

function pathsIn(word: Word, folder: string): Deletion[] {
  const text = textOf(word)
  if (text !== undefined) return [{ path: resolve(folder, text) }]
  // An unknown word may name anything in the folder.
  return (matchesOf(word, folder) ?? [folder]).map(everything)
}

/** `git clean -x` and `-X` also delete ignored files. */
function isCleaning(words: readonly (string | undefined)[]): boolean {
  const start = words.indexOf('clean')
  return start !== -1 && words.slice(start).some((word) => word === undefined || /^-[a-zA-Z]*[xX]/.test(word))
}

function findDeletions(words: readonly Word[], folders: readonly string[]): Deletion[] {
  const texts = words.map(textOf)
  if (!texts.includes('-delete') && !texts.some((text) => text === 'rm' || text === 'unlink')) return []
  const options = words.findIndex((word) => /^[-(!]/.test(startOf(word)))
  const places = words.slice(0, options === -1 ? words.length : options)
  const name = texts[texts.indexOf('-name') + 1]
  // With another operator, or wildcards that our patterns do not have, files with other names may be deleted, too.
  const isNarrow =
    texts.filter((text) => text === '-name').length === 1 &&
    !texts.some((text) => text !== undefined && ['-o', '-or', '!', '-not', ','].includes(text)) &&
    !/[[\\/]/.test(name ?? '')
  return folders
    .flatMap((folder) => (places.length === 0 ? [{ path: folder }] : places.flatMap((word) => pathsIn(word, folder))))
    .map(({ path }) => ({ path, ...(isNarrow && name !== undefined && { name }) }))
}
