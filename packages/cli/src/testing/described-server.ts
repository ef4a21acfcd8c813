// An MCP server for tests, as its own program. The file in its first argument describes its only tool. If the description is `write` and a
// path, it tries to write that file.
import { readFileSync, writeFileSync } from 'node:fs'
import { createInterface } from 'node:readline'

const [file = ''] = process.argv.slice(2)

interface Request {
  id?: number
  method: string
  params?: { protocolVersion?: string }
}

function resultOf({ method, params }: Request): object {
  switch (method) {
    case 'initialize':
      return {
        protocolVersion: params?.protocolVersion,
        capabilities: { tools: {} },
        serverInfo: { name: 'described', version: '1' },
      }
    case 'tools/list': {
      const description = readFileSync(file, 'utf8')
      const [, path] = /^write (.+)$/.exec(description) ?? []
      if (path !== undefined) tryToWrite(path)
      return { tools: [{ name: 'look_up', description, inputSchema: { type: 'object' } }] }
    }
    default:
      return {}
  }
}

function tryToWrite(path: string): void {
  try {
    writeFileSync(path, '')
  } catch {
    // The sandbox does not allow it.
  }
}

for await (const line of createInterface({ input: process.stdin })) {
  const request = JSON.parse(line) as Request
  if (request.id === undefined) continue
  process.stdout.write(`${JSON.stringify({ jsonrpc: '2.0', id: request.id, result: resultOf(request) })}\n`)
}
