import { connect } from 'node:net'

/** What a model of the load generator says, piece by piece, as it comes over its own connection. */
export async function* readScript(port: number, index: number): AsyncGenerator<string> {
  const socket = connect({ host: '127.0.0.1', port, noDelay: true })
  socket.setEncoding('utf8')
  socket.write(`${index}\n`)
  let rest = ''
  for await (const chunk of socket) {
    const lines = (rest + (chunk as string)).split('\n')
    rest = lines.pop() as string
    for (const line of lines) yield (JSON.parse(line) as { text: string }).text
  }
}
