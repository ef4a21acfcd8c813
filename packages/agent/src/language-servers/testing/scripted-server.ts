// A language server for tests. Each line of a file that has the word BAD is an error. Its first argument is its behavior: `pull` answers,
// `push` publishes, `hang` answers nothing after its start, `mute` never starts, `flood` sends without end, `crash` ends when a file is
// opened, `huge` announces a message of a gigabyte. The second is a file to which it appends what it does.
import { appendFileSync } from 'node:fs'

const [mode = 'pull', notes = '/dev/null'] = process.argv.slice(2)
const texts = new Map<string, string>()
let buffer = Buffer.alloc(0)

note(`started ${process.pid}`)
process.stdin.on('end', () => process.exit(0))
process.stdin.on('data', (chunk: Buffer) => {
  buffer = Buffer.concat([buffer, chunk])
  for (;;) {
    const end = buffer.indexOf('\r\n\r\n')
    if (end < 0) return
    const length = Number(/Content-Length: (\d+)/.exec(buffer.subarray(0, end).toString())?.[1])
    if (buffer.length < end + 4 + length) return
    const message = JSON.parse(buffer.subarray(end + 4, end + 4 + length).toString()) as Message
    buffer = buffer.subarray(end + 4 + length)
    take(message)
  }
})

interface Message {
  id?: number
  method?: string
  params: { textDocument: { uri: string; text?: string; version?: number }; contentChanges?: { text: string }[] }
}

function take({ id, method, params }: Message): void {
  if (mode === 'mute') return
  switch (method) {
    case 'initialize':
      send({ id, result: { capabilities: mode === 'push' ? {} : { diagnosticProvider: {} } } })
      return
    case 'textDocument/didOpen':
    case 'textDocument/didChange': {
      const { uri, text, version } = params.textDocument
      if (mode === 'crash') process.exit(3)
      if (mode === 'flood') flood()
      if (mode === 'huge') process.stdout.write(`Content-Length: ${2 ** 30}\r\n\r\n${'x'.repeat(1024 * 1024)}`)
      note(`${method} ${uri.slice(uri.lastIndexOf('/') + 1)}`)
      texts.set(uri, text ?? params.contentChanges?.[0]?.text ?? '')
      if (mode === 'push')
        send({ method: 'textDocument/publishDiagnostics', params: { uri, version, diagnostics: errorsIn(uri) } })
      return
    }
    case 'textDocument/diagnostic':
      if (mode !== 'hang') send({ id, result: { kind: 'full', items: errorsIn(params.textDocument.uri) } })
      return
    default:
  }
}

function errorsIn(uri: string): object[] {
  return (texts.get(uri) ?? '').split('\n').flatMap((text, line) => {
    const character = text.indexOf('BAD')
    if (character < 0) return []
    return [{ range: { start: { line, character } }, severity: 1, source: 'test', message: `${text.trim()} is bad` }]
  })
}

function flood(): void {
  const params = { type: 3, message: 'x'.repeat(60_000) }
  const more = (): void => {
    while (send({ method: 'window/logMessage', params }));
    process.stdout.once('drain', more)
  }
  more()
}

function send(message: object): boolean {
  const body = JSON.stringify({ jsonrpc: '2.0', ...message })
  return process.stdout.write(`Content-Length: ${Buffer.byteLength(body)}\r\n\r\n${body}`)
}

function note(text: string): void {
  appendFileSync(notes, `${text}\n`)
}
