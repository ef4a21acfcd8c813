// One server of a service, with clients of its own.
import { answerParent } from '../wire/answer-parent.ts'
import { startProduct, type ProductAddress, type ProductOptions } from '../wire/product.ts'
import { measureLoop } from '../sessions/measure-loop.ts'
import { readModel } from '../sessions/read-model.ts'

answerParent({
  start: async (options: ProductOptions & { scriptPort: number }): Promise<ProductAddress> => {
    const { address } = await startProduct({ ...options, modelOf: () => readModel(options.scriptPort, 0) })
    return address
  },
  measure: ({ ms }: { ms: number }) => measureLoop(ms),
})
