export { FakeProvider, startFakeProvider, type FakeApi, type FakeRequest, type FakeResponder } from './fake-provider.ts'
export type {
  FakeAnswer,
  FakeContent,
  FakeEnding,
  FakeErrorKind,
  FakeFailure,
  FakeFinish,
  FakeStep,
  FakeUsage,
} from './fake-script.ts'
