export {
  FakeProvider,
  startFakeProvider,
  type FakeApi,
  type FakeProviderOptions,
  type FakeRequest,
  type FakeResponder,
} from './fake-provider.ts'
export type {
  FakeAnswer,
  FakeBytes,
  FakeContent,
  FakeEnding,
  FakeErrorKind,
  FakeFailure,
  FakeFinish,
  FakeStep,
  FakeUsage,
} from './fake-script.ts'
export type { FakeHost } from './openai-chat-rules.ts'
export type { BrokenRule } from './request-rule.ts'
