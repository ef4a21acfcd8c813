import type { ToolCallPart } from '@tapetree/session'
import { callArgument } from '../text/call-argument.ts'
import { contentText } from '../text/content-text.ts'
import { fitText } from '../text/display-width.ts'
import { harmlessLine } from '../text/harmless.ts'

/** A call on one line: the tool and what it is about. */
export function toolLine(call: Pick<ToolCallPart, 'name' | 'input'>, columns = 100): string {
  return fitText(harmlessLine(`${call.name} ${callArgument(call)}`.trim()), columns)
}

/** The first line of what a call that failed had to say. */
export function failedLine({ name, result }: Pick<ToolCallPart, 'name' | 'result'>, columns = 100): string {
  const lines = contentText(result?.content ?? '').split('\n')
  const first = lines.find((line) => line.trim() !== '') ?? ''
  return fitText(harmlessLine(`${name} failed: ${first.trim()}`), columns)
}
