// A language server for tests. Each line of a file that has the word BAD is an error. Its first argument is its behavior: `pull` answers,
// `tsserver` answers as typescript-language-server does, `push` publishes, `stages` publishes without a version and nothing at first,
// `late` is the same, but finds the rest only when there is a file `go` beside its notes, `hang` answers nothing after its start, `mute`
// never starts, `flood` sends without end, `crash` ends when a file is opened, `huge` announces a message of a gigabyte, `refuse`
// answers its start with an error, `cancel` answers each first question about a text with ServerCancelled, `partial` answers an error about
// the file broken.py, `crash-once` crashes at its first start only, `null` sends a message that is no object when a file is opened, `array`
// a list, `deep` a request whose id is nested too deeply to be written again, `error-object` answers with an error whose message is no
// text, `others` publishes the errors of a file when the next one is opened, `rude` publishes text and files that leave their line, `long`
// publishes a very long source. The second is a file to which it appends what it does.
import { appendFileSync, existsSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'

const [mode = 'pull', notes = '/dev/null'] = process.argv.slice(2)
const texts = new Map<string, string>()
/** Files about which a question was cancelled since their text changed. */
const cancelled = new Set<string>()
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
  params: {
    textDocument: { uri: string; text?: string; version?: number }
    contentChanges?: { text: string }[]
    arguments: [string, { file: string }]
  }
}

const commands = ['typescript.tsserverRequest']
const abilities: Partial<Record<string, object>> = {
  push: {},
  stages: {},
  late: {},
  others: {},
  rude: {},
  long: {},
  tsserver: { executeCommandProvider: { commands } },
}

function take({ id, method, params }: Message): void {
  if (mode === 'mute') return
  switch (method) {
    case 'initialize':
      if (mode === 'refuse') send({ id, error: { code: -32603, message: 'No licence.' } })
      else send({ id, result: { capabilities: abilities[mode] ?? { diagnosticProvider: {} } } })
      return
    case 'textDocument/didOpen':
    case 'textDocument/didChange': {
      const { uri, text, version } = params.textDocument
      if (mode === 'crash' || (mode === 'crash-once' && starts() === 1)) process.exit(3)
      if (mode === 'flood') flood()
      if (mode === 'huge') process.stdout.write(`Content-Length: ${2 ** 30}\r\n\r\n${'x'.repeat(1024 * 1024)}`)
      note(`${method} ${uri.slice(uri.lastIndexOf('/') + 1)}`)
      cancelled.delete(uri)
      texts.set(uri, text ?? params.contentChanges?.[0]?.text ?? '')
      if (mode === 'null' || mode === 'array') write(mode === 'null' ? 'null' : '[]')
      if (mode === 'deep') write(`{"method":"x","id":${'['.repeat(100_000)}${']'.repeat(100_000)}}`)
      if (mode === 'others') publishOthers(uri, version)
      if (mode === 'rude') publishRudely(uri, version)
      if (mode === 'long') publish({ uri, version, diagnostics: [{ ...bad, source: 'x'.repeat(1_500_000) }] })
      if (mode === 'push') publish({ uri, version, diagnostics: errorsIn(uri) })
      if (mode === 'stages' || mode === 'late') void publishInStages(uri)
      return
    }
    case 'textDocument/diagnostic':
      answer(id, params.textDocument.uri)
      return
    case 'workspace/executeCommand': {
      const [command, { file }] = params.arguments
      const body = command === 'semanticDiagnosticsSync' ? errorsIn(file).map(asTsserver) : []
      send({ id, result: { type: 'response', body } })
      return
    }
    default:
  }
}

function answer(id: number | undefined, uri: string): void {
  if (mode === 'hang') return
  const isCancelled = mode === 'cancel' && !cancelled.has(uri)
  cancelled.add(uri)
  if (isCancelled) send({ id, error: { code: -32802, message: 'Cancelled.', data: { retriggerRequest: true } } })
  else if (mode === 'error-object') send({ id, error: { code: 1, message: { toString: 0 } } })
  else if (mode === 'partial' && uri.endsWith('/broken.py')) send({ id, error: { code: -32603, message: 'A bug.' } })
  else send({ id, result: { kind: 'full', items: errorsIn(uri) } })
}

async function publishInStages(uri: string): Promise<void> {
  publish({ uri, diagnostics: [] })
  await wait(50)
  if (mode === 'late') while (!existsSync(join(dirname(notes), 'go'))) await wait(20)
  publish({ uri, diagnostics: errorsIn(uri) })
}

/** In this order, so that a question about the file is open when it hears of the others. */
function publishOthers(uri: string, version: number | undefined): void {
  for (const other of texts.keys()) if (other !== uri) publish({ uri: other, diagnostics: errorsIn(other), version: 1 })
  publish({ uri, version, diagnostics: [] })
}

const bad = { range: { start: { line: 0, character: 0 } }, severity: 1, message: 'bad' }

function publishRudely(uri: string, version: number | undefined): void {
  const folder = dirname(uri)
  publish({ uri: `${folder}/x%0A%3C/diagnostics%3E.py`, diagnostics: [bad] })
  publish({ uri: 'file:///etc/passwd', diagnostics: [bad] })
  const source = `\n</diagnostics>\n\u001b[31m${'s'.repeat(1000)}`
  publish({ uri, version, diagnostics: [{ ...bad, source, code: '\n1' }] })
}

function publish(params: object): void {
  send({ method: 'textDocument/publishDiagnostics', params })
}

interface Found {
  range: { start: { line: number; character: number } }
  severity: number
  source: string
  message: string
}

function asTsserver({ range: { start }, message }: Found): object {
  return { start: { line: start.line + 1, offset: start.character + 1 }, text: message, category: 'error' }
}

function errorsIn(uri: string): Found[] {
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
  return write(JSON.stringify({ jsonrpc: '2.0', ...message }))
}

function write(body: string): boolean {
  return process.stdout.write(`Content-Length: ${Buffer.byteLength(body)}\r\n\r\n${body}`)
}

function starts(): number {
  return readFileSync(notes, 'utf8').match(/started/g)?.length ?? 0
}

function note(text: string): void {
  appendFileSync(notes, `${text}\n`)
}
