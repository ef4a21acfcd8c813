import type { McpServer } from '@modelcontextprotocol/server'
import { z } from 'zod'

export interface TestToolsOptions {
  /** Records what the server received. */
  note: (text: string) => void
  /** Additional tools. */
  only?: readonly string[]
}

/** The smallest possible image. */
const onePixel = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=='

/** The tools of a test server. */
export function addTools(server: McpServer, { note, only = [] }: TestToolsOptions): void {
  const said = (text: string) => ({ content: [{ type: 'text' as const, text }] })
  server.registerTool(
    'echo',
    {
      description: 'Says it again.',
      inputSchema: z.object({ text: z.string() }),
      annotations: { readOnlyHint: true },
    },
    ({ text }) => said(text),
  )
  server.registerTool('environment', {}, () => said(JSON.stringify(process.env)))
  server.registerTool('arguments', {}, () => said(JSON.stringify(process.argv.slice(2))))
  server.registerTool('huge', { inputSchema: z.object({ bytes: z.number() }) }, ({ bytes }) => said('x'.repeat(bytes)))
  server.registerTool('fail', {}, () => ({ ...said('The moon is down.'), isError: true }))
  server.registerTool('hang', {}, async (context) => {
    note('hanging')
    await new Promise<void>((resolve) => context.mcpReq.signal.addEventListener('abort', () => resolve()))
    note('cancelled')
    return said('too late')
  })
  server.registerTool('grow', {}, () => {
    server.registerTool('extra', { description: 'Came later.' }, () => said('extra'))
    return said('grown')
  })
  server.registerTool('show', {}, () => ({
    content: [
      { type: 'text', text: 'Look:\u001b[31m' },
      { type: 'image', data: onePixel, mimeType: 'image/jpeg' },
      { type: 'resource_link', uri: 'file:///a.txt', name: 'a', mimeType: 'text/plain' },
      { type: 'resource', resource: { uri: 'note://1', text: 'a note' } },
    ],
    structuredContent: { shown: 4 },
  }))
  for (const name of only) server.registerTool(name, { description: `Also ${name}.` }, () => said(name))
}
