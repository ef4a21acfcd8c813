import { describe, expect, test } from 'vitest'
import { LocalNetwork } from './local-bus.ts'
import { testSessionBus } from './testing/bus-contract.ts'

describe('bus inside of a process', () => {
  testSessionBus({
    test,
    canInterrupt: false,
    open: async (nodes) => {
      const network = new LocalNetwork()
      const buses = nodes.map((node) => network.join(node))
      return { buses, close: async () => void (await Promise.all(buses.map((bus) => bus.close()))) }
    },
  })

  test('a name can be used again after its node has closed, and only then', async () => {
    const network = new LocalNetwork()
    const first = network.join('a')
    expect(() => network.join('a')).toThrow('A node named a is connected already.')
    await first.close()
    const second = network.join('a')
    await first.close()
    second.answer(async () => new Uint8Array([1]))
    expect(await network.join('b').request('a', new Uint8Array())).toEqual(new Uint8Array([1]))
  })
})
