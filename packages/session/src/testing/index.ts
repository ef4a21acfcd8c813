export { assistant, call, result, said, toolResult, user } from './builders.ts'
export { changedPort, type PortChange } from './changed-port.ts'
export {
  MemoryDisk,
  type DiskFault,
  type DiskOperation,
  type DiskState,
  type DiskStep,
  type MemoryDiskOptions,
} from './memory-disk.ts'
export { randomFrom } from './random-from.ts'
export { randomLog } from './random-log.ts'
export type { StoreUnderTest } from './port-contract.ts'
export { testSessionStore, type ContractRunner } from './store-contract.ts'
export type { DiskFile, DiskFolder, DiskNode, FileChange, NameChange } from './memory-disk.ts'
export type { DiskBytes } from './disk-bytes.ts'
