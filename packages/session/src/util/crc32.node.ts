export { crc32 } from 'node:zlib'
