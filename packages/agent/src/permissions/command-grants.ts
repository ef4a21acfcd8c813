import type { Rule } from './rules.ts'
import { textOf, type Word } from './shell/words/word.ts'

/**
 * The rule that lets a command pass from now on: with any further words where these cannot make something else of it, else
 * with exactly its own. Undefined where it has words that are not known.
 */
export function grantOf(words: readonly Word[]): (Rule & { type: 'command' }) | undefined {
  const texts: string[] = []
  for (const word of words) {
    const text = textOf(word)
    if (text === undefined) return undefined
    texts.push(text)
  }
  const length = openPrefix(texts)
  if (length !== undefined) return { effect: 'allow', type: 'command', match: [...texts.slice(0, length), '*'] }
  return texts.at(-1) === '*' ? undefined : { effect: 'allow', type: 'command', match: texts }
}

/** How many of the first words say all that matters. */
function openPrefix([program = '', command = '']: readonly string[]): number | undefined {
  if (program === 'git' && harmlessGit.has(command)) return 2
  return program === 'mkdir' || program === 'touch' ? 1 : undefined
}

/** None of their options runs another program. Test runners, build tools and package managers all have one that does. */
const harmlessGit = new Set(['add', 'commit', 'checkout', 'switch', 'restore', 'stash', 'tag', 'mv', 'rm'])
