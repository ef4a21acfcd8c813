import type { StyledLine } from '../markdown/styled-line.ts'
import type { Style, Theme } from '../theme.ts'

/** Lines of a unified diff, in its colours. Its first two lines name the file, which stands above it already. */
export function diffLines(lines: readonly string[], theme: Theme): StyledLine[] {
  const body = lines[0]?.startsWith('--- ') && lines[1]?.startsWith('+++ ') ? lines.slice(2) : lines
  return body.map((text) => [{ text, style: diffStyle(text, theme) }])
}

/** A change that is asked for, before there is a diff of it. */
export function proposedDiff(input: Readonly<Record<string, unknown>>): string {
  const { oldText, newText, content } = input
  return [...marked('-', oldText), ...marked('+', newText ?? content)].join('\n')
}

function marked(sign: string, text: unknown): string[] {
  if (typeof text !== 'string' || text === '') return []
  return text
    .replace(/\n$/, '')
    .split('\n')
    .map((line) => sign + line)
}

function diffStyle(line: string, theme: Theme): Style | undefined {
  if (line.startsWith('@@')) return theme.diffPlace
  if (line.startsWith('+')) return theme.diffAdded
  if (line.startsWith('-')) return theme.diffRemoved
  return line.startsWith('\\') ? theme.muted : undefined
}
