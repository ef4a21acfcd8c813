import type { AnyMessage } from '@agentclientprotocol/sdk/unstable'
import { setImmediate } from 'node:timers/promises'
import { expect, test, vi } from 'vitest'
import { serveAcp } from './serve-acp.ts'

const initialize: AnyMessage = { jsonrpc: '2.0', id: 1, method: 'initialize', params: { protocolVersion: 1 } }

test('an editor that quits before its first answer is written loads no sessions', async () => {
  const [writing, gate] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
  const { readable, writable: editor } = new TransformStream<AnyMessage, AnyMessage>()
  const writable = new WritableStream<AnyMessage>({
    write: () => {
      writing.resolve()
      return gate.promise
    },
  })
  const open = vi.fn<() => Promise<never>>(() => Promise.reject(new Error('not loaded in this test')))
  const served = serveAcp({ stream: { readable, writable }, takesServers: false, login: '', open })
  const writer = editor.getWriter()
  await writer.write(initialize)
  await writing.promise
  await writer.close()
  await served
  gate.resolve()
  await setImmediate()
  expect(open).not.toHaveBeenCalled()
})
