import type { Model } from '@tapetree/agent'
import type { ModelPart } from '@tapetree/agent/models'
import { readScript } from './read-script.ts'

/** A model that says what comes from the load generator. */
export function readModel(port: number, index: number): Model {
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
