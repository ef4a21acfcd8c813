import { payloadOf, textOr } from './codec.ts'
import { isObject } from '../util/json.ts'
import type { DiskLine } from './line.ts'

/** The searchable text of a line; empty if it has none. */
export function textOfLine(line: DiskLine): string {
  const payload = payloadOf(line)
  if (line.type === 'compaction' || line.type === 'branch_summary') return textOr(payload['summary'], '')
  if (line.type !== 'message') return ''
  const words = textsOf(payload['content'])
  const bash = payload['bash_execution']
  if (isObject(bash)) words.push(textOr(bash['command'], ''), textOr(bash['output'], ''))
  return words.join('\n')
}

function textsOf(content: unknown): string[] {
  if (typeof content === 'string') return [content]
  if (!Array.isArray(content)) return []
  return content.flatMap((block) => (isObject(block) ? textsOfBlock(block) : []))
}

function textsOfBlock(block: Record<string, unknown>): string[] {
  const inner = block[String(block['type'])]
  if (!isObject(inner)) return []
  switch (block['type']) {
    case 'text':
      return [textOr(inner['content'], '')]
    case 'tool_result':
      return textsOf(inner['content'])
    case 'tool_use':
      return [JSON.stringify(inner['input'] ?? {})]
    default:
      return []
  }
}
