import type { NetworkInterfaceInfo } from 'node:os'
import { expect, test } from 'vitest'
import { likelyFirst, machineNames, type Machine } from './listen.ts'

function machine(hostname: string, ...addresses: string[]): Machine {
  const infoOf = (address: string): NetworkInterfaceInfo =>
    ({ address, internal: address === '127.0.0.1' || address === '::1' }) as NetworkInterfaceInfo
  return { hostname, interfaces: { lo: addresses.slice(0, 2).map(infoOf), eth0: addresses.slice(2).map(infoOf) } }
}

const laptop = machine('Laptop', '127.0.0.1', '::1', 'fe80::1', '2001:db8::7', '192.0.2.7')

test('a server on all addresses has the addresses and names of the machine, except those that other machines cannot use', () => {
  expect(machineNames('::', laptop)).toEqual({
    names: ['laptop', 'laptop.local'],
    addresses: ['192.0.2.7', '2001:db8::7'],
  })
  expect(machineNames('0.0.0.0', laptop).addresses).toEqual(['192.0.2.7'])
  expect(machineNames('192.0.2.7', laptop)).toEqual({ names: ['laptop', 'laptop.local'], addresses: [] })
})

test('a server on loopback has no names for other machines', () => {
  for (const host of ['127.0.0.1', '127.0.0.2', '::1', 'localhost'])
    expect(machineNames(host, laptop)).toEqual({ names: [], addresses: [] })
})

test('a machine has its full name and one for the local network', () => {
  expect(machineNames('::', machine('pop.example.com')).names).toEqual(['pop.example.com', 'pop.local'])
  expect(machineNames('::', machine('mac.local')).names).toEqual(['mac.local'])
  for (const odd of ['localhost', 'with space', 'a_b', '']) expect(machineNames('::', machine(odd)).names).toEqual([])
})

test('the likely address is one of the given ones, and none is lost', async () => {
  const { addresses } = machineNames('::')
  expect((await likelyFirst(addresses)).toSorted()).toEqual([...new Set(addresses)].toSorted())
  expect(await likelyFirst(['192.0.2.7', '2001:db8::7'])).toEqual(['192.0.2.7', '2001:db8::7'])
})
