export { randomFrom } from '@tapetree/session/testing'
