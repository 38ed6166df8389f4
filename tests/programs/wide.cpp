// SPDX-License-Identifier: MIT
// Wide output, which the kernel's own msvcrt.dll lacks; a header's name as Windows' users write it.
#include <Windows.h>
#include <cstdio>
#include <cwchar>

int main()
{
    wchar_t wide[40];
    std::swprintf(wide, 40, L"%d-%ls", 12, L"x");
    std::printf("%S %ls\n", L"capital", wide);
    std::wprintf(L"%ls %d\n", L"wprintf", 7);
    return 0;
}
