import { InProcessNotices } from '../../../infrastructure/messaging/in-process/notices.ts'
import { noticesContract } from './notices.contract.ts'

noticesContract('inside one process', async () => {
  const notices = new InProcessNotices()
  return { here: notices, there: notices, close: async () => undefined }
})
