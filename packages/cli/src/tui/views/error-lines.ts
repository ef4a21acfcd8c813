import { shownText, shownWords } from '../markdown/shown-text.ts'
import { paint, wrapLine, type Span } from '../markdown/wrap-line.ts'
import type { Theme } from '../theme.ts'

interface ShownError {
  /** Not yet harmless. */
  message: string
  kind?: string | undefined
}

/** What failed in one sentence; what else is known about it is dimmer and below. */
export function errorLines({ message, kind }: ShownError, { theme, width }: { theme: Theme; width: number }): string[] {
  const { sentence, status, details } = errorParts(message)
  const known = [status, kind].filter((each) => each !== undefined).join(', ')
  const lines: Span[][] = shownText(sentence)
    .split('\n')
    .map((text) => [{ text, style: theme.error }])
  if (known !== '') lines.at(-1)?.push({ text: ` (${shownWords(known)})`, style: theme.muted })
  const below = details === undefined ? [] : shownText(details).split('\n')
  for (const text of below) lines.push([{ text, style: theme.muted }])
  const rows = lines.flatMap((line) => wrapLine(line, width - 2))
  return rows.map((row, index) => (index === 0 ? `${theme.error('✗')} ` : '  ') + paint(row))
}

/** `x does not accept the request (400): too long` is a sentence, a status, and what the provider said. */
export function errorParts(message: string): { sentence: string; status?: string; details?: string } {
  const { sentence, status, details } = parts.exec(message)?.groups ?? {}
  if (sentence === undefined) return { sentence: message }
  return {
    sentence: `${sentence}.`,
    ...(status !== undefined && { status }),
    ...(details !== undefined && { details }),
  }
}

const parts = /^(?<sentence>[^\n:]{1,100}?)(?: \((?<status>\d{3})\))?(?:: (?<details>\S[^]*)|\.)$/
