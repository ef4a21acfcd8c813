// The server whose sessions stream: agents, drafts, logs, sockets.
import type { Model } from '@tapetree/agent'
import type { ModelPart } from '@tapetree/agent/models'
import { answerParent } from '../wire/answer-parent.ts'
import { startProduct, type ProductAddress } from '../wire/product.ts'
import { measureLoop } from './measure-loop.ts'
import { readScript } from './read-script.ts'

answerParent({
  start: async (options: { folder: string; sessions: number; scriptPort: number }): Promise<ProductAddress> => {
    let next = 0
    const { address } = await startProduct({ ...options, modelOf: () => readModel(options.scriptPort, next++) })
    return address
  },
  measure: ({ ms }: { ms: number }) => measureLoop(ms),
})

function readModel(port: number, index: number): Model {
  return {
    provider: 'scripted',
    id: 'scripted',
    api: 'scripted',
    limits: { contextTokens: 100_000_000, outputTokens: 1_000_000 },
    prepare: () => ({
      reference: { sha256: '0'.repeat(64), adapter: 'scripted', adapterVersion: '1' },
      stream: () => readParts(port, index),
    }),
  }
}

async function* readParts(port: number, index: number): AsyncGenerator<ModelPart> {
  for await (const text of readScript(port, index)) yield { type: 'text_delta', part: 0, text }
  yield { type: 'finish', reason: 'stop' }
}
