import { expect, test } from 'vitest'
import { isPublicAddress } from './fetch-page.ts'

test.each([
  '1.1.1.1',
  '8.8.8.8',
  '93.184.216.34',
  '172.15.0.1',
  '172.32.0.1',
  '100.63.255.255',
  '100.128.0.0',
  '223.255.255.255',
])('%s is public', (address) => {
  expect(isPublicAddress(address)).toBe(true)
})

test.each(['2606:4700::1111', '2a00:1450:4001::200e', '2001:4860:4860::8888'])('%s is public', (address) => {
  expect(isPublicAddress(address)).toBe(true)
})

test.each([
  ['this host', '0.0.0.0'],
  ['this host', '0.1.2.3'],
  ['private', '10.0.0.1'],
  ['private', '172.16.0.1'],
  ['private', '172.31.255.255'],
  ['private', '192.168.1.1'],
  ['carrier', '100.64.0.1'],
  ['carrier, metadata of one provider', '100.100.100.200'],
  ['loopback', '127.0.0.1'],
  ['loopback', '127.255.255.255'],
  ['metadata', '169.254.169.254'],
  ['protocol', '192.0.0.192'],
  ['documentation', '192.0.2.1'],
  ['benchmark', '198.19.0.1'],
  ['multicast', '224.0.0.1'],
  ['multicast', '239.255.255.255'],
  ['reserved', '240.0.0.1'],
  ['broadcast', '255.255.255.255'],
  ['unspecified', '::'],
  ['loopback', '::1'],
  ['mapped loopback', '::ffff:127.0.0.1'],
  ['mapped metadata', '::ffff:a9fe:a9fe'],
  ['mapped, even if public', '::ffff:8.8.8.8'],
  ['compatible', '::127.0.0.1'],
  ['translated', '64:ff9b::7f00:1'],
  ['translated, local', '64:ff9b:1::1'],
  ['6to4 of loopback', '2002:7f00:1::1'],
  ['Teredo', '2001:0:4136:e378:8000:63bf:3fff:fdd2'],
  ['documentation', '2001:db8::1'],
  ['documentation', '3fff::1'],
  ['unique local', 'fc00::1'],
  ['unique local, metadata', 'fd00:ec2::254'],
  ['link-local', 'fe80::1'],
  ['link-local with a zone', 'fe80::1%eth0'],
  ['public with a zone', '2606:4700::1111%eth0'],
  ['site-local', 'fec0::1'],
  ['multicast', 'ff02::1'],
  ['discard', '100::1'],
  ['not an address', 'localhost'],
  ['not an address', ''],
  ['octal, which no address is', '0177.0.0.1'],
])('%s is not public: %s', (_, address) => {
  expect(isPublicAddress(address)).toBe(false)
})
