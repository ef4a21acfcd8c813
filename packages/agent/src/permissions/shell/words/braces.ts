import { literal, type Word } from './word.ts'

/** The words that `{a,b}` or `{1..9}` stands for; undefined for any form that is not that plain. */
export function expandBraces(source: string): Word[] | undefined {
  if (/^\{[0-9]+\.\.[0-9]+\}$/.test(source)) return [{ pieces: [{ type: 'digits' }], isSeveral: true }]
  if (!/^\{[A-Za-z0-9_./-]*(?:,[A-Za-z0-9_./-]*)+\}$/.test(source)) return undefined
  const texts = source.slice(1, -1).split(',')
  return texts.length > maxAlternatives ? undefined : texts.map(literal)
}

/** A word may have several braces, and their numbers multiply. */
const maxAlternatives = 16
