/**
 * Splits what was typed after a command, as a shell would where it can: quotes keep words together, a backslash takes the meaning
 * from a blank, a quote or a backslash. What a shell would complain about is taken as it is: a quote that is not closed, the
 * apostrophe in `don't`, the backslashes of `C:\folder`.
 */
export function splitArguments(text: string): string[] {
  const words: string[] = []
  let word: string | undefined
  for (let at = 0; at < text.length;) {
    const letter = text.charAt(at)
    if (/\s/.test(letter)) {
      if (word !== undefined) words.push(word)
      word = undefined
      at += 1
      continue
    }
    const quoted = isOpeningQuote(text, at) ? readQuoted(text, at) : undefined
    if (quoted) {
      word = (word ?? '') + quoted.text
      at = quoted.end
    } else if (letter === '\\' && /[\s'"\\]/.test(text.charAt(at + 1))) {
      word = (word ?? '') + text.charAt(at + 1)
      at += 2
    } else {
      word = (word ?? '') + letter
      at += 1
    }
  }
  if (word !== undefined) words.push(word)
  return words
}

function isOpeningQuote(text: string, at: number): boolean {
  const letter = text.charAt(at)
  if (letter === '"') return true
  return letter === "'" && !/[\p{L}\p{N}]/u.test(text.charAt(at - 1))
}

/** Nothing where the quote is not closed. */
function readQuoted(text: string, start: number): { text: string; end: number } | undefined {
  const quote = text.charAt(start)
  let inside = ''
  for (let at = start + 1; at < text.length; at += 1) {
    const letter = text.charAt(at)
    if (letter === quote) return { text: inside, end: at + 1 }
    const isEscape = letter === '\\' && quote === '"' && /["\\]/.test(text.charAt(at + 1))
    if (isEscape) at += 1
    inside += text.charAt(at)
  }
  return undefined
}
