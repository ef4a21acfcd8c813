// The server whose sessions stream: agents, drafts, logs, sockets.
import { answerParent } from '../wire/answer-parent.ts'
import { startProduct, type ProductAddress } from '../wire/product.ts'
import { measureLoop } from './measure-loop.ts'
import { readModel } from './read-model.ts'

answerParent({
  start: async (options: { folder: string; sessions: number; scriptPort: number }): Promise<ProductAddress> => {
    let next = 0
    const { address } = await startProduct({ ...options, modelOf: () => readModel(options.scriptPort, next++) })
    return address
  },
  measure: ({ ms }: { ms: number }) => measureLoop(ms),
})
