export { assistant, call, result, said, toolResult, user } from './builders.ts'
export { testSessionStore, type ContractRunner, type StoreUnderTest } from './store-contract.ts'
