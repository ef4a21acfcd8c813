import { BlockList, isIPv4, isIPv6 } from 'node:net'

/**
 * Whether an address is on the public internet: not this machine, its network, a provider's metadata service,
 * or a reserved range. For IPv6 only the allocated range counts, which excludes forms that carry an IPv4
 * address.
 */
export function isPublicAddress(address: string): boolean {
  if (isIPv4(address)) return !reserved.check(address, 'ipv4')
  return (
    isIPv6(address) && !address.includes('%') && givenOut.check(address, 'ipv6') && !reserved.check(address, 'ipv6')
  )
}

const givenOut = new BlockList()
givenOut.addSubnet('2000::', 3, 'ipv6')

const reserved = new BlockList()
for (const [network, prefix] of [
  ['0.0.0.0', 8],
  ['10.0.0.0', 8],
  ['100.64.0.0', 10],
  ['127.0.0.0', 8],
  ['169.254.0.0', 16],
  ['172.16.0.0', 12],
  ['192.0.0.0', 24],
  ['192.0.2.0', 24],
  ['192.88.99.0', 24],
  ['192.168.0.0', 16],
  ['198.18.0.0', 15],
  ['198.51.100.0', 24],
  ['203.0.113.0', 24],
  ['224.0.0.0', 4],
  ['240.0.0.0', 4],
] as const) {
  reserved.addSubnet(network, prefix, 'ipv4')
}
for (const [network, prefix] of [
  // Teredo, ORCHID and other protocols
  ['2001::', 23],
  // documentation
  ['2001:db8::', 32],
  ['3fff::', 20],
  // 6to4, which carries an IPv4 address
  ['2002::', 16],
] as const) {
  reserved.addSubnet(network, prefix, 'ipv6')
}
