// A real MCP server for tests, as a separate program. Its first argument is its behavior: `serve`, `exit` or
// `mute`.
import { spawn } from 'node:child_process'
import { appendFileSync } from 'node:fs'

const [mode, notes = '/dev/null', ...tools] = process.argv.slice(2)

appendFileSync(notes, `${mode} ${process.pid}\n`)
if (mode === 'exit') {
  process.stderr.write('\x1b[31mno\x1b[0m licence\n')
  process.exit(7)
}
if (mode === 'mute') process.stdin.resume()
if (mode === 'serve') {
  const { McpServer } = await import('@modelcontextprotocol/server')
  const { StdioServerTransport } = await import('@modelcontextprotocol/server/stdio')
  const { addTools } = await import('./test-tools.ts')
  const server = new McpServer({ name: 'test', version: '1' })
  addTools(server, { note: (text) => appendFileSync(notes, `${text}\n`), only: tools })
  server.registerTool('crash', {}, () => {
    process.stderr.write('out of paper\n')
    process.exit(3)
  })
  server.registerTool('spawn', { description: 'Starts one that stays in the group and one that leaves it.' }, () => {
    const inside = spawn('sleep', ['300'], { stdio: 'ignore' })
    const outside = spawn('sleep', ['300'], { stdio: 'ignore', detached: true })
    return { content: [{ type: 'text', text: `${process.pid} ${inside.pid} ${outside.pid}` }] }
  })
  await server.connect(new StdioServerTransport())
}
