import type { SourceName } from '../../../packages/cli/src/import/import-source.ts'

/** What a line of a program says, read apart from the importer: a mistake there must not hide itself. */
export function saidIn(source: SourceName, line: Loose): string[] {
  return readers[source](line).filter((text) => text !== '')
}

type Loose = Record<string, unknown>

const readers: Record<SourceName, (line: Loose) => string[]> = {
  'claude-code': (line) => {
    const { type, message, attachment, content, summary, customTitle } = line
    if (type === 'user' || type === 'assistant') return parts(loose(message)['content'])
    if (type === 'system') return text(content)
    if (type === 'summary') return text(summary).map((each) => each.slice(0, 500))
    if (type === 'custom-title') return text(customTitle).map((each) => each.slice(0, 500))
    const { type: kind, content: file, prompt } = loose(attachment)
    if (type !== 'attachment') return []
    if (kind === 'file') return text(loose(loose(file)['file'])['content'])
    return kind === 'queued_command' ? parts(prompt) : []
  },
  codex: (line) => {
    const item = loose(line['payload'])
    if (line['type'] === 'compacted') return text(item['message'])
    if (line['type'] === 'event_msg' && item['type'] === 'error') return text(item['message'])
    if (line['type'] !== 'response_item') return []
    const { type, role, content, summary, output, name, arguments: input, encrypted_content: encrypted } = item
    if (type === 'message') {
      if (role !== 'user' && role !== 'assistant') return []
      const said = parts(content)
      return role === 'user' && said[0]?.startsWith('<environment_context>') ? [] : said
    }
    if (type === 'reasoning') return [...parts(summary), ...parts(content), ...text(encrypted)]
    if (type === 'function_call') return [...text(name).map((each) => each.slice(0, 200)), ...inputs(input)]
    return type === 'function_call_output' && typeof output === 'string' && !output.startsWith('{') ? [output] : []
  },
  pi: (line) => {
    const { type, message, summary, name, content } = line
    if (type === 'compaction' || type === 'branch_summary') return text(summary)
    if (type === 'session_info') return text(name).map((each) => each.slice(0, 500))
    if (type === 'custom_message') return parts(content)
    const { role, content: said, command, output } = loose(message)
    if (type !== 'message' || role === 'system') return []
    return role === 'bashExecution' ? [...text(command), ...text(output)] : parts(said)
  },
  opencode: (row) => {
    const data = loose(row['data'])
    if (row['table'] !== 'part') return []
    const { type, text: said, url, state } = data
    if (type === 'text' || type === 'reasoning') return text(said)
    if (type === 'file') return String(data['mime']).startsWith('image/') ? text(url).flatMap(imageIn) : []
    if (type !== 'tool') return []
    const { input, output, error, status } = loose(state)
    return [...leaves(input), ...(status === 'completed' ? text(output) : status === 'error' ? text(error) : [])]
  },
  gemini: (line) => {
    const { type, content, thoughts, toolCalls } = line
    if (type !== 'user' && type !== 'gemini' && type !== 'info' && type !== 'error') return []
    const said = parts(content)
    if (type === 'user' && said[0]?.trimStart().startsWith('<session_context>')) return []
    const thought = list(thoughts).flatMap((each) => [
      ...text(loose(each)['subject']),
      ...text(loose(each)['description']),
    ])
    const calls = list(toolCalls).flatMap((call) => [...leaves(loose(call)['args']), ...parts(loose(call)['result'])])
    return [...said, ...thought, ...calls]
  },
}

/** Text, thinking, images, calls and results in a list of blocks, in the words of all five formats. */
function parts(content: unknown): string[] {
  if (typeof content === 'string') return [content]
  return list(content).flatMap((part) => {
    if (typeof part === 'string') return [part]
    const { type, text: said, thinking, signature, source, data, image_url: url, inlineData } = loose(part)
    if (type === 'thinking') return [...text(thinking), ...text(signature)]
    if (type === 'redacted_thinking') return text(data)
    if (type === 'image') return text(source === undefined ? data : loose(source)['data']).flatMap(imageIn)
    if (type === 'input_image') return text(url).flatMap(imageIn)
    if (inlineData !== undefined && said === undefined) return text(loose(inlineData)['data']).flatMap(imageIn)
    if (type === 'tool_use') return leaves(loose(part)['input'])
    if (type === 'toolCall') return leaves(loose(part)['arguments'])
    if (type === 'tool_result') return parts(loose(part)['content'])
    const response = loose(loose(loose(part)['functionResponse'])['response'])
    if (typeof said !== 'string') return typeof response['output'] === 'string' ? [response['output']] : []
    return [said]
  })
}

/** The picture of the recordings; other bytes are none. */
export function imageIn(data: string): string[] {
  const base64 = data.replace(/^data:[^,]*,/, '')
  if (!/^[A-Za-z0-9+/]+=*$/.test(base64)) return []
  const bytes = Buffer.from(base64, 'base64')
  return bytes.subarray(0, 8).toString('latin1') === '\x89PNG\r\n\x1a\n' ? [`image ${bytes.length}`] : []
}

function inputs(input: unknown): string[] {
  if (typeof input !== 'string') return []
  try {
    return leaves(JSON.parse(input))
  } catch {
    return [input]
  }
}

/** Every text in a value. */
function leaves(value: unknown, depth = 0): string[] {
  if (typeof value === 'string') return [value]
  if (typeof value !== 'object' || value === null || depth > 30) return []
  return Object.values(value).flatMap((each) => leaves(each, depth + 1))
}

function text(value: unknown): string[] {
  return typeof value === 'string' ? [value] : []
}

function list(value: unknown): unknown[] {
  return Array.isArray(value) ? (value as unknown[]) : []
}

function loose(value: unknown): Loose {
  return typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as Loose) : {}
}
