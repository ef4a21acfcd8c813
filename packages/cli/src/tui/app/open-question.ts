export { isQuestion } from '@tapetree/client'
