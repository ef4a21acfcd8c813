export { systemClock, type Clock } from '@tapetree/session/util/wait'
