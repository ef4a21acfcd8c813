export type FilledTemplate = { type: 'filled'; text: string } | { type: 'too_long'; maxLength: number }

const maxLength = 1024 * 1024

const number = String.raw`[1-9]\d?`
const placeholder = [
  // $1 to $99; $100 is a price.
  String.raw`\$(?<bare>${number})(?!\d)`,
  String.raw`\$(?:@|ARGUMENTS(?![A-Za-z0-9_]))`,
  String.raw`\$\{(?<braced>${number}|@|ARGUMENTS)(?<default>:-[^{}]*)?\}`,
  String.raw`\$\{@:(?<from>${number})(?::(?<count>\d{1,2}))?\}`,
].join('|')
/** Two dollars are literal, and what follows them is not a placeholder; a backslash escapes a placeholder. */
const pattern = new RegExp(String.raw`\$\$|\\?(?:${placeholder})`, 'g')

/**
 * Replaces the placeholders by the text after the command:
 *
 * - `$1` … `$99`, `${1}`: one argument, empty if it is missing
 * - `${1:-text}`: the text if the argument is missing or empty
 * - `$@`, `${@}`: all arguments, without their quotes, separated by blanks
 * - `${@:2}`, `${@:2:3}`: those from the second on, three of them
 * - `$ARGUMENTS`: the unchanged text, with quotes and line breaks
 *
 * Arguments and defaults are inserted unchanged: a placeholder in them is text. If a template has no placeholder, the
 * typed text follows it, so that nothing is lost.
 */
export function fillTemplate(body: string, typed: string): FilledTemplate {
  const given = splitArguments(typed)
  let text = ''
  let end = 0
  let hasPlaceholder = false
  for (const match of body.matchAll(pattern)) {
    const [whole] = match
    text += body.slice(end, match.index)
    end = match.index + whole.length
    if (whole === '$$') text += whole
    else if (whole.startsWith('\\')) text += whole.slice(1)
    else {
      hasPlaceholder = true
      text += valueOf(whole, match.groups ?? {}, { given, typed })
    }
    if (text.length > maxLength) return { type: 'too_long', maxLength }
  }
  text += body.slice(end)
  if (!hasPlaceholder && typed.trim() !== '') text += `\n\n${typed.trim()}`
  return text.length > maxLength ? { type: 'too_long', maxLength } : { type: 'filled', text }
}

function valueOf(
  whole: string,
  { bare, braced, default: fallback, from, count }: Record<string, string | undefined>,
  { given, typed }: { given: readonly string[]; typed: string },
): string {
  if (from !== undefined) {
    const start = Number(from) - 1
    return given.slice(start, count === undefined ? undefined : start + Number(count)).join(' ')
  }
  const name = bare ?? braced ?? whole.slice(1)
  const value = allOf(name, { given, typed }) ?? given[Number(name) - 1] ?? ''
  return value === '' && fallback !== undefined ? fallback.slice(':-'.length) : value
}

function allOf(name: string, { given, typed }: { given: readonly string[]; typed: string }): string | undefined {
  if (name === '@') return given.join(' ')
  return name === 'ARGUMENTS' ? typed.trim() : undefined
}

/**
 * Splits the text after a command, like a shell where possible: quotes keep words together, a backslash escapes a
 * blank, a quote or a backslash. What a shell would reject is literal: a quote that is not closed, the apostrophe in
 * `don't`, the backslashes of `C:\folder`.
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

/** Undefined if the quote is not closed. */
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
